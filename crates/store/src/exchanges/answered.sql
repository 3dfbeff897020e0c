SELECT time, coalesce(one.value ->> '$.model', model) AS model, recipe,
       coalesce(one.value ->> '$.usage.input', tokens_in) AS tokens_in,
       coalesce(one.value ->> '$.usage.output', tokens_out) AS tokens_out,
       iif(one.value IS NULL, cost_picos, round((one.value ->> '$.cost') * 1e12)) AS cost_picos,
       iif(one.value IS NULL, without_picos, round((one.value ->> '$.cost') * 1e12)) AS without_picos
FROM exchanges LEFT JOIN json_each(iif(recipe IS NOT NULL AND json_valid(document), document, NULL), '$.models') AS one
WHERE user = ?1 AND time >= ?2
