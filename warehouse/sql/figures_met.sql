-- How many published figures are met. `paper_comparison` lists each figure, `paper_values` each value in the paper.
CREATE VIEW figures_met AS
SELECT
    workload,
    count(*) AS figures,
    count(*) FILTER (WHERE is_asserted) AS asserted_figures,
    count(*) FILTER (WHERE within_tolerance IS NOT NULL) AS compared_figures,
    count(*) FILTER (WHERE within_tolerance) AS met_figures
FROM paper_comparison
GROUP BY workload
