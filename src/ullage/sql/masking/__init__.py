"""Masked columns: which values of an answer are hidden, and which statements would show them in other ways."""

from .plan import MaskPlan, MaskPolicy, mask_plan

__all__ = ["MaskPlan", "MaskPolicy", "mask_plan"]
