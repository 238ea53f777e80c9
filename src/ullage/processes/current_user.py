"""The user of this process, under whose name figures are filed."""

import os

__all__ = ["user_name"]


def user_name() -> str:
    """Return the operating system's user name of this process; a number where it has none, as in many containers."""
    # Like `getpass.getuser`, whose import would add some milliseconds to every start.
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        if name := os.environ.get(variable):
            return name
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError, OSError):
        return str(os.getuid())
