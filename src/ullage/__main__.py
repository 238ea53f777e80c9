"""Runs `python -m ullage` as the command `ullage`.

Python puts the working folder first on the module path here, so a file `anyio.py` in an untrusted repository would be
imported in place of the library. The folder is removed before anything but `os` and `sys` is imported. What Python
itself imports earlier cannot be protected here: `python -P -m ullage` and the command `ullage` are safe from that too.
"""

import os
import sys

if __name__ == "__main__":
    if not sys.flags.safe_path and sys.path and os.path.realpath(sys.path[0] or ".") == os.path.realpath("."):
        del sys.path[0]
    from ullage.start import main

    sys.exit(main())
