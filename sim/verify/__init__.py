"""Verification at speed: constrained-random steps, coverage goals, and reproducers of what fails.

==============  =========================================================================
module          what it holds
==============  =========================================================================
bins            groups of bins, in words
goals           the coverage goals of a configuration, and why a bin is none
half_goals      those of steps at half the rate
counting        events, by integer arithmetic from the stimulus alone
coverage        which goals were met
stimulus        random steps, and those made for what is rare
half_stimulus   those of steps at half the rate
addends         C of special kinds, and C beside given sums
reproducer      shrinking, and the file that ``hwgen replay`` takes
campaign        batches in several processes, up to the first mismatch
==============  =========================================================================
"""

from sim.verify.bins import Goals
from sim.verify.campaign import Failure, Outcome, batch_steps, reproduce, stimulus_of, verify
from sim.verify.goals import goals
from sim.verify.reproducer import Mismatch, check, load, save, shrink
from sim.verify.stimulus import Stimulus

__all__ = [
    "Failure",
    "Goals",
    "Mismatch",
    "Outcome",
    "Stimulus",
    "batch_steps",
    "check",
    "goals",
    "load",
    "reproduce",
    "save",
    "shrink",
    "stimulus_of",
    "verify",
]
