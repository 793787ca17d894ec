-- Wireshark dissector for the datagrams of Rigstep: the frame's fields, what its numbers tell, and the message inside by
-- Wireshark's own protobuf dissector. The contract is wire.proto. The content of a keyed session is encrypted, and its keys
-- are nowhere but in the two ends: there the frame is all that can be shown.
--
-- Use: copy this file to the personal Lua plugins folder (Help > About > Folders), or start with
--   wireshark -X lua_script:proto/rigstep.lua
-- and name the repository's top folder in Preferences > Protocols > ProtoBuf > Search paths, so that wire.proto is found.
-- Other ports than 47001: Decode As > UDP port > Rigstep.

local rigstep = Proto("rigstep", "Rigstep link")

local HEADER_BYTES, TAG_BYTES = 44, 16
local senders = { [0x72] = "rig", [0x73] = "server" }

local f = {
  version = ProtoField.uint8("rigstep.version", "Protocol version"),
  sender = ProtoField.uint8("rigstep.sender", "Sender", base.HEX, senders),
  session = ProtoField.uint64("rigstep.session", "Session", base.HEX),
  number = ProtoField.uint64("rigstep.number", "Datagram of the session"),
  sent = ProtoField.int64("rigstep.sent_ns", "Sent, sender's clock [ns]"),
  echo_sent = ProtoField.int64("rigstep.echo_sent_ns", "Newest from the other side, its clock [ns]"),
  echo_came = ProtoField.int64("rigstep.echo_came_ns", "When that came, sender's clock [ns]"),
  held = ProtoField.int64("rigstep.held_ns", "Held between receiving and sending [ns]"),
  encrypted = ProtoField.bool("rigstep.encrypted", "Content encrypted"),
  content = ProtoField.bytes("rigstep.content", "Encrypted content"),
  tag = ProtoField.bytes("rigstep.tag", "Tag (CRC-32 and zeros where there is no key)"),
}
rigstep.fields = f

local short = ProtoExpert.new("rigstep.short", "Too short for a frame", expert.group.MALFORMED, expert.severity.ERROR)
rigstep.experts = { short }

-- A method of its own for use as a heuristic: false for datagrams of something else.
local function is_frame(buffer)
  return buffer:len() >= 4 and buffer(0, 2):string() == "RS" and senders[buffer(3, 1):uint()] ~= nil
end

-- A CRC-32 is followed by 12 bytes of zero, a tag of ChaCha20-Poly1305 hardly ever is. Before version 3 nothing is encrypted.
local function is_encrypted(buffer, tag)
  return buffer(2, 1):uint() >= 3 and buffer(4, 8):le_uint64() ~= UInt64(0) and
    buffer(tag + 4, 12):bytes() ~= ByteArray.new(("00"):rep(12))
end

function rigstep.dissector(buffer, pinfo, root)
  if not is_frame(buffer) then return 0 end
  pinfo.cols.protocol = "Rigstep"
  local tree = root:add(rigstep, buffer())
  if buffer:len() < HEADER_BYTES + TAG_BYTES then
    tree:add_proto_expert_info(short)
    return buffer:len()
  end
  local sender = senders[buffer(3, 1):uint()]
  tree:add(f.version, buffer(2, 1))
  tree:add(f.sender, buffer(3, 1))
  tree:add_le(f.session, buffer(4, 8))
  tree:add_le(f.number, buffer(12, 8))
  tree:add_le(f.sent, buffer(20, 8))
  tree:add_le(f.echo_sent, buffer(28, 8))
  tree:add_le(f.echo_came, buffer(36, 8))
  if buffer(36, 8):le_int64() ~= Int64(0) then
    tree:add(f.held, buffer(20, 24), buffer(20, 8):le_int64() - buffer(36, 8):le_int64()):set_generated()
  end
  local payload = buffer:len() - HEADER_BYTES - TAG_BYTES
  tree:add(f.tag, buffer(HEADER_BYTES + payload, TAG_BYTES))
  local encrypted = is_encrypted(buffer, HEADER_BYTES + payload)
  tree:add(f.encrypted, buffer(HEADER_BYTES + payload, TAG_BYTES), encrypted):set_generated()
  pinfo.cols.info = string.format("%s, datagram %s, %d bytes%s", sender, tostring(buffer(12, 8):le_uint64()), payload,
    encrypted and ", encrypted" or "")
  if encrypted and payload > 0 then
    tree:add(f.content, buffer(HEADER_BYTES, payload))
  elseif payload > 0 then
    local message = sender == "rig" and "rigstep.wire.RigToServer" or "rigstep.wire.ServerToRig"
    pinfo.private["pb_msg_type"] = "message," .. message
    local done, problem = pcall(Dissector.call, Dissector.get("protobuf"),
      buffer(HEADER_BYTES, payload):tvb(), pinfo, tree)
    if not done then tree:add(buffer(HEADER_BYTES, payload), "Message not dissected: " .. tostring(problem)) end
  end
  return buffer:len()
end

DissectorTable.get("udp.port"):add(47001, rigstep)
