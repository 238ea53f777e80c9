"""Whose values does nobody see?"""

from .plan import MaskPlan, mask_plan

__all__ = ["MaskPlan", "mask_plan"]
