"""Mixed-integer programs: the one caller of HiGHS, and an action set written as such a program."""

from equirecourse.recourse._milp._action_program import ActionProgram, Outcome, solve_programs
from equirecourse.recourse._milp._highs import Expression, Program, total
from equirecourse.recourse._milp._parts import Choice

__all__ = ["ActionProgram", "Choice", "Expression", "Outcome", "Program", "solve_programs", "total"]
