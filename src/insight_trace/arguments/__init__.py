"""Where replay arguments come from: a dump, a spec, a recipe; what the user changes; and how they are packed.

Everything ends in one type, `slots.ReplayArguments`: a tensor or scalar per slot, each with its tier. Import
from the modules: a replay of a dump then never loads what reads specs or recipes.
"""
