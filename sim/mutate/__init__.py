"""Mutation testing: faults planted into the RTL, which the verification must find.

::

    core --[rtlil]--> cells --[operators]--> mutants --[design]--> one core that holds them all, chosen by an input
                                                                          |
             random steps, gaps, stalls, resets --[campaign]--> killed, or alive --[equivalence]--> proven equivalent
"""
