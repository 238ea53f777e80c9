"""How many bytes does search by meaning add to what is installed?

Of the weights as they lie in the package, and of the wheels as they would be fetched; a wheel is built for this, into a
folder that is gone afterwards.
"""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

__all__ = ["sizes"]

_ROOT = Path(__file__).parent.parent
_WEIGHTS = {"table": "src/ullage/search/weights", "encoder": "encoder/src/ullage_encoder"}
_WHEELS = {"wheel": ".", "encoder's wheel": "encoder"}


def sizes() -> dict[str, int | None]:
    """None where it cannot be told."""
    found = {name: _weight(_ROOT / folder) for name, folder in _WEIGHTS.items()}
    return found | {name: _wheel(_ROOT / folder) for name, folder in _WHEELS.items()}


def _weight(folder: Path) -> int | None:
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix in {".npy", ".txt", ".json", ".onnx"}]
    return sum(path.stat().st_size for path in files) or None


def _wheel(folder: Path) -> int | None:
    with TemporaryDirectory() as place:
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
        subprocess.run([*command, "--wheel-dir", place, str(folder)], capture_output=True, check=False)
        return next((path.stat().st_size for path in Path(place).glob("*.whl")), None)
