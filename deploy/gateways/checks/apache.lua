-- SPDX-License-Identifier: Apache-2.0
-- Asks weir about a request, for apache.conf. What is sent is made here alone: nothing that the client wrote stands for
-- something else.
local socket = require "socket"

local HOST, PORT = "127.0.0.1", 8082
local CONNECT_S, ANSWER_S = 0.2, 1.5
local TOLD = {"RateLimit", "RateLimit-Policy", "Retry-After"}

local kept -- the connection of this thread

local function forget()
  if kept then
    kept:close()
  end
  kept = nil
end

local function connect()
  kept = socket.tcp()
  kept:settimeout(CONNECT_S)
  if not kept:connect(HOST, PORT) then
    forget()
    return false
  end
  kept:setoption("tcp-nodelay", true)
  return true
end

-- An answer's status and headers; nil and why, where none came in time.
local function receive()
  local until_s = socket.gettime() + ANSWER_S
  local function take(what)
    kept:settimeout(math.max(0.001, until_s - socket.gettime()))
    return kept:receive(what)
  end
  local line, why = take("*l")
  local status = line and tonumber(line:match("^HTTP/1%.1 (%d%d%d)"))
  local headers = {}
  while line and line ~= "" do
    line, why = take("*l")
    local name, value = (line or ""):match("^([^:]+):%s*(.*)$")
    if name then
      headers[name:lower()] = value
    end
  end
  local length = tonumber(headers["content-length"]) or 0
  if line and length > 0 then
    line, why = take(length)
  end
  if not line or not status then
    return nil, why
  end
  return status, headers
end

local function exchange(text)
  local is_old = kept ~= nil
  if not is_old and not connect() then
    return nil
  end
  kept:settimeout(ANSWER_S)
  local sent, why = kept:send(text)
  local status, headers
  if sent then
    status, headers = receive()
    why = headers
  end
  if status then
    return status, headers
  end
  forget()
  if is_old and why ~= "timeout" then
    return exchange(text) -- weir was restarted since
  end
  return nil
end

function ask(r)
  -- The pages that Apache makes of a request, an error's for example, are not asked for by anybody.
  if not r.is_initial_req then
    return apache2.DECLINED
  end
  local status, headers = exchange(table.concat({
    "GET /v1/forwarded HTTP/1.1",
    "Host: weir",
    "X-Forwarded-For: " .. r.useragent_ip,
    "X-Forwarded-Method: " .. r.method,
    "X-Forwarded-Uri: " .. r.unparsed_uri,
    "X-Forwarded-Host: " .. (r.hostname or r.server_name or ""), -- as %V has it in the log
    "User-Agent: " .. (r.headers_in["User-Agent"] or ""),
    "\r\n",
  }, "\r\n"))
  if not status or status >= 500 then
    return apache2.DECLINED -- it passes
  end
  for _, name in ipairs(TOLD) do
    if headers[name:lower()] then
      r.err_headers_out[name] = headers[name:lower()]
    end
  end
  if status == 200 then
    return apache2.DECLINED
  end
  -- 431: the client wrote more than weir takes. Anything else is a refusal of the question itself, by a wrong password for
  -- example: weir's log says why.
  return (status == 429 or status == 431) and status or 500
end
