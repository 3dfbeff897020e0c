SELECT recorded, model, recipe, iif(tokens_out > 0 OR cost_picos IS NOT NULL, tokens_in, 0), tokens_out, cost_picos, cost_picos
FROM (SELECT recorded, recipe, coalesce(one.value ->> '$.model', record ->> '$.model') AS model,
             coalesce(one.value ->> '$.input_tokens', record ->> '$.tokens.prompt' + record ->> '$.tokens.input') AS tokens_in,
             coalesce(one.value ->> '$.output_tokens', record ->> '$.tokens.output') AS tokens_out,
             round(iif(one.value IS NULL, record ->> '$.cost_usd', one.value ->> '$.cost_usd') * 1e12) AS cost_picos
      FROM runs LEFT JOIN json_each(record, '$.models') AS one WHERE user = ?1 AND recorded >= ?2
        AND json_type(record, '$.request_id') = 'null' AND (one.value IS NOT NULL OR record ->> '$.status' <> 'refused'))
