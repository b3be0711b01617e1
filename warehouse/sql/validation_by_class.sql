-- Errors of the timing model by class of public measurement; the band of an answer is held_out_worst_factor.
CREATE VIEW validation_by_class AS
SELECT
    error_class,
    count(*) AS points,
    exp(avg(ln(factor))) AS mean_factor,
    max(factor) AS worst_factor,
    exp(avg(ln(held_out_factor))) AS held_out_mean_factor,
    max(held_out_factor) AS held_out_worst_factor
FROM validation
WHERE is_scored
GROUP BY error_class
ORDER BY min(point)
