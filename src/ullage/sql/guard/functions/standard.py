"""Which functions are so common that a database without them may say so itself?

Data only: names of standard SQL that compute from what they are given, wherever they exist.
"""

from ..wordlist import words

__all__ = ["NAMES"]

NAMES = words(
    """
abs array_agg array_any avg cast ceil ceiling char_length character_length coalesce concat count cume_dist
current_date current_time current_timestamp dense_rank exp extract first_value floor greatest grouping lag
last_value lead least length ln lower ltrim max min mod nth_value ntile nullif octet_length overlay percent_rank
percentile_cont percentile_disc position power rank replace round row_number rtrim sign sqrt stddev stddev_pop
stddev_samp string_agg substr substring sum trim upper var_pop var_samp variance width_bucket
"""
)
