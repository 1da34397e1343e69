"""Simulators: the embedded AI core and, where CANN is installed, the vendor's."""
