-- SPDX-License-Identifier: Apache-2.0
-- Asks weir about a request, for haproxy.cfg: sets txn.weir_verdict to passed, blocked, large, refused or unknown, and beside it
-- what the client is told. What is sent is made here alone: nothing that the client wrote stands for something else.
local LARGEST = 14 * 1024 -- bytes of what the client wrote, for a question that HAProxy takes itself (tune.bufsize)
local told = {
  ["ratelimit"] = "txn.weir_limit",
  ["ratelimit-policy"] = "txn.weir_policy",
  ["retry-after"] = "txn.weir_retry",
}

core.register_action("weir_ask", {"http-req"}, function(txn)
  -- As it came, and as the log has it: of http://host/path and of OPTIONS *, too.
  local target = txn.sf:url()
  local host, agent = txn.sf:req_hdr("host"), txn.sf:req_fhdr("user-agent")
  if #target + #host + #agent > LARGEST then
    txn:set_var("txn.weir_verdict", "large")
    return
  end
  local answer = core.httpclient():get{
    url = "http://127.0.0.1/v1/forwarded",
    dst = "abns@weir-checks",
    timeout = 2000,
    headers = {
      ["x-forwarded-for"] = {txn.sf:src()},
      ["x-forwarded-method"] = {txn.sf:method()},
      ["x-forwarded-uri"] = {target},
      ["x-forwarded-host"] = {host},
      ["user-agent"] = {agent},
    },
  }
  local status = answer and answer.status or 0
  local verdict = "refused"
  if status == 200 then
    verdict = "passed"
  elseif status == 429 then
    verdict = "blocked"
  elseif status == 431 then
    verdict = "large"
  elseif status == 0 or status >= 500 then
    verdict = "unknown"
  end
  txn:set_var("txn.weir_verdict", verdict)
  for header, variable in pairs(told) do
    local values = answer and answer.headers and answer.headers[header]
    if values then
      txn:set_var(variable, values[0])
    end
  end
end)
