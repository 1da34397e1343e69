"""The vendor's simulator: find CANN, write a replay workspace, build it, collect, export.

`msprof op simulator` answers 0 whatever happened, so results are judged by its files and its words.
"""
