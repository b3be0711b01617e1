-- How many published figures are met. Each of them: `paper_comparison`; what the paper prints: `paper_values`.
CREATE VIEW figures_met AS
SELECT
    workload,
    count(*) AS figures,
    count(*) FILTER (WHERE is_asserted) AS asserted_figures,
    count(*) FILTER (WHERE within_tolerance IS NOT NULL) AS compared_figures,
    count(*) FILTER (WHERE within_tolerance) AS met_figures
FROM paper_comparison
GROUP BY workload
