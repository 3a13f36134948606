"""Pack files as an LMS packs them, for tests."""

import zipfile
from collections.abc import Mapping
from pathlib import Path


def packed(path: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write a zip archive, and give its path."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path
