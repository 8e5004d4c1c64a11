package dissect

// NoteCode is what a Note's code stands for.
type NoteCode struct {
	Code     string
	Severity Severity
	Text     string // one line
}

// NoteCodes are the codes of notes, sorted. A protocol may add codes of its own
// here, and a schema names them in `note:`; one that is not in the list has the
// severity Notice.
var NoteCodes = []NoteCode{
	{"ack_before_capture", Info, "acknowledges a record from before the capture"},
	{"ack_repeated", Info, "acknowledges once more what was acknowledged before"},
	{"acked_unseen", Notice, "acknowledges a record that the capture does not hold"},
	{"alternative_layout", Info, "a disputed layout decoded it, because the default does not fit"},
	{"ambiguous_layout", Notice, "more than one disputed layout fits; the first was taken"},
	{"ambiguous_type", Notice, "which packet it is depends on who sent it, and that is not known"},
	{"assumed_context", Notice, "decoded with a stated default, because nothing taught the real one"},
	{"bad_checksum", Warning, "the checksum does not match what it covers"},
	{"batch_too_large", Info, "more entries than the usual sender puts into a datagram"},
	{"bytes_between", Notice, "bytes between the fields belong to none of them"},
	{"conflict", Warning, "the same sequence as an earlier record, with other bytes"},
	{"control_on_tcp", Warning, "a transport control, which the client rejects over TCP"},
	{"copies_missing", Notice, "the sender sends it several times, and not all of them were captured"},
	{"datagram_ignored", Notice, "the receiver ignores the datagram, because it came late"},
	{"datagram_too_large", Warning, "larger than what the client receives"},
	{"defect", Warning, "the dissector failed on it, which is a defect of opscope; shown as bytes"},
	{"delimiter_skipped", Notice, "FF FF in front of the first record was skipped"},
	{"deprecated_packet", Warning, "a packet for old clients; what is used now stands beside it"},
	{"development_packet", Notice, "a packet of development builds"},
	{"duplicate", Info, "the capture shows the same packet twice"},
	{"empty_string", Info, "a string of length 0, which is not the normal form"},
	{"field_repeated", Notice, "a field that cannot repeat came again; the last value counts"},
	{"fields_overlap", Warning, "bytes belong to more than one field"},
	{"frame_size_too_large", Warning, "the frame's size is above the protocol's limit"},
	{"frame_size_too_small", Warning, "the frame's size is below that of its header"},
	{"frame_truncated", Warning, "the frame ends before its size is reached"},
	{"heartbeat_number", Info, "a heartbeat of 8 bytes, which may be one number"},
	{"host_byte_order", Notice, "numbers in the sender's own byte order, which nothing on the wire tells"},
	{"invalid_utf8", Warning, "a text is not valid UTF-8"},
	{"late_context", Info, "decoded after a later packet taught the table it needs"},
	{"length_disagrees", Warning, "the length is not that of what follows"},
	{"length_unusual", Warning, "the length is not the one that this message always has"},
	{"mode_guessed", Notice, "the stream mode was read off the bytes"},
	{"mode_mismatch", Warning, "the bytes do not fit the stream mode that the handshake gave"},
	{"move_batch_count_mismatch", Warning, "the count of a batch does not fit its size; the whole entries that are there are shown"},
	{"never_acknowledged", Notice, "no acknowledgement of it was captured"},
	{"nonzero_after_text", Info, "bytes after the end of a text are not zero"},
	{"not_captured", Notice, "the capture does not hold all of its bytes"},
	{"not_negotiated", Notice, "the other side did not ask for this"},
	{"out_of_order", Notice, "arrived after a record that was sent later"},
	{"out_of_range", Warning, "a value is outside of what the schema allows"},
	{"out_of_step", Warning, "the peers report different states for one moment of the game"},
	{"out_of_window", Warning, "the sequence is outside of the receiver's window"},
	{"padding_nonzero", Info, "the padding bits at the end are not zero"},
	{"piece_refused", Warning, "a piece of a message that does not fit the others"},
	{"pieces_dropped", Notice, "a message was given up, of which pieces are missing"},
	{"port_missed", Notice, "the usual clients do not see all of these ports"},
	{"presumed_length", Info, "an IP length of 0, as segmentation offload leaves it; that of the packet is taken"},
	{"protobuf_malformed", Warning, "bytes that no Protocol Buffers message has"},
	{"protobuf_truncated", Warning, "a Protocol Buffers field ends before its length is reached"},
	{"raw_fallback", Notice, "shown as bytes, because its layout could not be applied"},
	{"reassembled", Info, "put together of the pieces in which it was sent"},
	{"required_missing", Notice, "a field that a message must have is not there"},
	{"resend_copy", Info, "a further copy that the sender sends by design"},
	{"reserved_nonzero", Warning, "a reserved number is not zero"},
	{"resync", Notice, "the first frame after a gap or garbage"},
	{"retransmission", Notice, "the sender sent it again"},
	{"role_guessed", Info, "who is client and who is server was guessed"},
	{"same_payload_new_sequence", Notice, "sent again under a new sequence"},
	{"sequence_65535", Warning, "a sequence that the client never makes"},
	{"sequence_gap", Notice, "records between this one and the one before were not seen"},
	{"sequence_restarted", Notice, "the sender counts from the start again"},
	{"sequence_skipped", Info, "the sender skipped sequences, of which only the newest matters"},
	{"several_frames", Notice, "several frames in one datagram"},
	{"size_prefix", Info, "the datagram has its own size in front"},
	{"size_prefix_ambiguous", Notice, "the first two bytes may be a size or a record"},
	{"slot_unknown_to_old", Notice, "old metaservers do not know this slot"},
	{"stale", Notice, "older than what the receiver already has"},
	{"stale_ack", Notice, "acknowledges a record of long ago"},
	{"struct_size_differs", Info, "some programs take this packet for a longer one"},
	{"table_changed", Notice, "teaches other values than an earlier packet did"},
	{"text_without_nul", Notice, "a text without the NUL that its length counts"},
	{"too_many_in_flight", Warning, "more records wait for an acknowledgement than the protocol allows"},
	{"trailing_bytes", Notice, "bytes are left after the last field"},
	{"unexpected_copy", Notice, "a further copy of what is sent once"},
	{"unexpected_direction", Warning, "this side does not send this packet"},
	{"unexpected_transport", Warning, "this packet does not travel over this transport"},
	{"unknown_body", Notice, "the packet is known, the layout of its body is not"},
	{"unknown_opcode", Warning, "no packet of the protocol has this opcode"},
	{"unknown_packet_id", Warning, "no packet of the protocol has this id"},
	{"value_cut", Notice, "a number larger than its type, of which the upper bits are dropped"},
	{"wire_type_mismatch", Warning, "a known field arrived in another form, and is taken for an unknown one"},
}

// severities are those of NoteCodes, which the sinks ask for with each note.
var severities = func() map[string]Severity {
	m := make(map[string]Severity, len(NoteCodes))
	for _, n := range NoteCodes {
		m[n.Code] = n.Severity
	}
	return m
}()

// SeverityOf returns the severity of a code.
func SeverityOf(code string) Severity {
	if s, ok := severities[code]; ok {
		return s
	}
	return Notice
}
