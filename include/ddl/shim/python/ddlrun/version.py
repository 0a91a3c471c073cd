# SPDX-License-Identifier: Apache-2.0
"""The version of the Python packages, which is that of the headers."""

__version__ = "0.1.0"
