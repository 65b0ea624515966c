"""The commands: each module has a function of its own name, whose docstring is its help.

`EXAMPLES` are the lines shown below the help. A new command is a new module.
"""
