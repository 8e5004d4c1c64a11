package main

import "github.com/spf13/cobra"

// newFilter is a help topic: a command that does nothing but to be read.
func newFilter() *cobra.Command {
	return &cobra.Command{
		Use:   "filter",
		Short: "The language of -Y, the display filter",
		Long: `A display filter says which records are shown. It speaks of the keys of NDJSON and of
the fields of all protocols by the names that the output shows; numbers are those of
NDJSON, without scale and unit. A word that is nearly right is named in the error.

Keys      type file n packets time session flow dir transport src dst protocol message
          opcode envelope.* context size offset ack.* acks.* notes rest error.* passed
          interface
          src.port dst.port; of a gap: bytes after_packet before_packet reason; of a
          session: client server state reason; of an event: code text; of an ack: by rtt_ms
Fields    by name (entity_id), in structs and arrays by path (entities.mask.position),
          one element as entities[0].id. Where a key of frames has the name too, the
          field is fields.NAME: fields.dir fields.type fields.time. What no .proto file
          has is called by its number: fields["3"]["1"]
Values    numbers (53, 0x35, 1.5), texts in quotes, true and false. The names of an enum,
          of flags, of messages and of the words of keys need no quotes:
          code == accepted, dir == c2s, opcode == D_ACK. A flag is a number: war.fed
          Bytes are hexadecimal digits in quotes (matches looks at the bytes themselves),
          an integer above 63 bits a number in quotes, an address "10.0.0.2",
          "10.0.0.2:2627" or "10.0.0.0/8", a time "2026-11-29 20:15:02" (UTC) or as RFC 3339
Columns   what -Y compares, -e writes: -T csv -e time -e entities.id -e 'len(entities)'
Operators == != < <= > >=  and or not  && || !  + - * / %
          x in [1, 2, 5..9]  x in 1..9  x contains "a"  x startsWith "a"  x endsWith "a"
          x matches "REGEXP"; in and the four before may have a not in front
Arrays    any(A, C) all(A, C) none(A, C) one(A, C) count(A, C) len(A); in C the element is
          #, and its members .NAME
Notes     note("retransmission"); any(notes, .severity == warning)

When a record does not have the field (an empty rest is none), or has it several times:

                         not there    several values
  x == 1, x < 1, in ...  false        true when it is true of any
  x != 1                 false        true when it is true of all
  x not in [1]           false        true when it is true of all
  not x == 1             true         true when x == 1 is false
  x                      false        true (a flag: when any is set)
  any, one, count        false, 0
  all                    false
  none                   true

What the output masks (secrets unless --show-secrets, texts of persons with
--mask-personal, and whatever repeats a secret) is there, has no length, and no comparison
with it is true: a filter tells no more than the output does.

A preset is a selection with a name, in opscope/profile.yaml below the user's
configuration or in the file of --profile; with --preset it counts beside the flags:
  presets:
    trouble: {filter: 'error or note("retransmission")', hide: [D_ACK, 0x0f], before: 2}

A capture filter (BPF: udp port 2627) is another language, and is told apart.`,
		Example: `  opscope decode -Y 'code == accepted' pcaps/wulfram/session.pcapng
  opscope decode -Y 'dir == c2s and note("retransmission")' pcaps/wulfram/lossy.pcapng
  opscope decode -Y 'ack.rtt_ms > 40 or ack.state == unacked' pcaps/wulfram/lossy.pcapng
  opscope decode -Y 'opcode in [D_ACK, 0x35]' -c 5 pcaps/wulfram/session.pcapng
  opscope decode -Y 'any(entities, .id == 1003 and .mask.position)' pcaps/wulfram/play.pcapng
  opscope decode -Y 'type in [gap, event] or error' --before 2 --after 1 pcaps/wulfram/missed.pcapng
  opscope decode -Y 'src.port == 2592 and fields.dir > 100' pcaps/netrek/tcp.pcapng
  opscope decode --only SP_PLAYER,SP_FLAGS pcaps/netrek/tcp.pcapng
  opscope decode --hide D_ACK,0x0f pcaps/wulfram/play.pcapng`,
	}
}
