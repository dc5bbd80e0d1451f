"""What setuptools does beyond ``pyproject.toml``: it puts reports into the package.

``reports/`` lies beside ``hwgen/``, and ``hwgen cost`` reads it where no other report is given. A wheel and an sdist
hold these files as ``hwgen/reports/``; git holds them once. ``pyproject.toml`` says which ones.
"""

from setuptools.command.build_py import build_py

__all__ = ["BuildPy"]

_PACKAGE = "hwgen.reports"


class BuildPy(build_py):
    """``build_py`` with one package more than setuptools finds by itself."""

    def finalize_options(self) -> None:
        """Add the package: ``packages.find`` takes no package whose directory has another name."""
        if _PACKAGE not in self.distribution.packages:
            self.distribution.packages.append(_PACKAGE)
        super().finalize_options()
