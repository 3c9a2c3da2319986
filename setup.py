"""Build of beam-bpe: packages and, where a compiler is there, the native core."""

from setuptools import find_packages, setup

setup(
    packages=find_packages(include=["bpe", "bpe.*", "pipelines", "pipelines.*", "schemas"]),
    package_data={"bpe": ["py.typed", "*.pyi"]},
)
