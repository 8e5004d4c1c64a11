package main

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// vector is one entry of a vectors.json of mmo or of the made-up game beside it.
type vector struct {
	Name, Transport, Direction, Hex, Message, Schema string
	ID                                               int     `json:"packet_id"`
	Packet                                           *string `json:"packet_name"`
	Size                                             int
	Fields                                           map[string]any
	Redact, Segments                                 []string
	Unknown                                          []struct {
		Number      int
		Wire, Value string
	} `json:"unknown_fields"`
	Diagnostics []struct{ Severity, Code string }
	Frames      []*vector
}

func readVectors(t *testing.T, file string) []*vector {
	t.Helper()
	var list []*vector
	if err := json.Unmarshal(readFile(t, file), &list); err != nil {
		t.Fatal(err)
	}
	return list
}

func mmoVectors(t *testing.T) []*vector {
	return readVectors(t, "../../testdata/vectors/mmo/vectors.json")
}

// capture writes a pcap in which the vector is all that is said, on ports that tell who
// is who, behind the handshake of a connection.
func (v *vector) capture(t *testing.T) string {
	t.Helper()
	segments := v.Segments
	if len(segments) == 0 {
		segments = []string{v.Hex}
	}
	server := v.Direction == "s2c"
	var packets [][]byte
	seq := [2]uint32{1000, 2000}
	if v.Transport == "tcp" {
		packets = append(packets, tcpPacket(false, 2, 999, nil), tcpPacket(true, 18, 1999, nil), tcpPacket(false, 16, 1000, nil))
	}
	for _, s := range segments {
		data, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		if v.Transport == "udp" {
			packets = append(packets, udpPacket(server, data))
			continue
		}
		side := map[bool]int{false: 0, true: 1}[server]
		packets = append(packets, tcpPacket(server, 16, seq[side], data))
		seq[side] += uint32(len(data))
	}
	file := filepath.Join(t.TempDir(), v.Name+".pcap")
	if err := os.WriteFile(file, rawCapture(packets...), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// The ports of the captures that are made here.
const (
	vectorTCP = 7100
	vectorUDP = 7101
)

func tcpPacket(server bool, flags byte, seq uint32, data []byte) []byte {
	ports := [2]uint16{50111, vectorTCP}
	if server {
		ports = [2]uint16{vectorTCP, 50111}
	}
	be := binary.BigEndian
	p := be.AppendUint16(be.AppendUint16(nil, ports[0]), ports[1])
	p = be.AppendUint32(be.AppendUint32(p, seq), 0)
	p = append(p, 0x50, flags, 0x20, 0, 0, 0, 0, 0)
	return ipPacket(server, 6, append(p, data...))
}

func udpPacket(server bool, data []byte) []byte {
	ports := [2]uint16{50111, vectorUDP}
	if server {
		ports = [2]uint16{vectorUDP, 50111}
	}
	be := binary.BigEndian
	p := be.AppendUint16(be.AppendUint16(nil, ports[0]), ports[1])
	p = append(be.AppendUint16(p, uint16(8+len(data))), 0, 0)
	return ipPacket(server, 17, append(p, data...))
}

func ipPacket(server bool, protocol byte, payload []byte) []byte {
	ends := [2]byte{2, 1}
	if server {
		ends = [2]byte{1, 2}
	}
	p := binary.BigEndian.AppendUint16([]byte{0x45, 0}, uint16(20+len(payload)))
	p = append(p, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, ends[0], 10, 0, 0, ends[1])
	return append(p, payload...)
}

// asMMO are the flags that have the captures above read as the mmo.
var asMMO = []string{"-d", fmt.Sprintf("tcp.port==%d,mmo", vectorTCP), "-d", fmt.Sprintf("udp.port==%d,mmo", vectorUDP)}

// beside are the notes that a vector may have besides its diagnostics: about a packet
// that stands alone, and about what is no fault.
var beside = []string{"acked_unseen", "never_acknowledged", "ack_before_capture", "unknown_body"}

// TestMMOVectors compares each vector, shown with its secrets, with what it means.
func TestMMOVectors(t *testing.T) {
	for _, v := range mmoVectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			r := opscope(t, append([]string{"decode", "-T", "json", "--raw", "--show-secrets", v.capture(t)}, asMMO...)...)
			if r.code != exitDone {
				t.Fatalf("exit code %d: %s", r.code, r.err)
			}
			got := records(objects(t, r.out))
			want := v.Frames
			if want == nil {
				want = []*vector{v}
			}
			if len(got) != len(want) {
				t.Fatalf("got %d records, want %d\n%s", len(got), len(want), r.out)
			}
			for i := range want {
				want[i].Direction, want[i].Transport = v.Direction, v.Transport
				want[i].compare(t, got[i])
			}
		})
	}
}

func (v *vector) compare(t *testing.T, got map[string]any) {
	t.Helper()
	if got["opcode"] != float64(v.ID) || got["dir"] != v.Direction || got["transport"] != v.Transport || got["raw"] != v.Hex {
		t.Errorf("got %v %v %v %v", got["opcode"], got["dir"], got["transport"], got["raw"])
	}
	if v.Packet != nil && got["message"] != *v.Packet {
		t.Errorf("got message %v, want %s", got["message"], *v.Packet)
	}
	if length := got["envelope"].(map[string]any)["length"]; length != float64(v.Size) {
		t.Errorf("got length %v, want %d", length, v.Size)
	}
	fields := got["fields"].(map[string]any)
	want := map[string]any{}
	for name, value := range v.Fields {
		if v.Schema == "unknown" {
			u := value.(map[string]any)
			value = u["value"]
			if u["wire"] == "len" { // as text, where it can be read
				b, err := hex.DecodeString(value.(string))
				if err != nil {
					t.Fatal(err)
				}
				value = string(b)
			}
		}
		want[name] = value
	}
	for _, u := range v.Unknown {
		want[fmt.Sprint(u.Number)] = fields[fmt.Sprint(u.Number)] // how it is shown is for the schema to test
		if want[fmt.Sprint(u.Number)] == nil {
			t.Errorf("unknown field %d is not shown", u.Number)
		}
	}
	if !reflect.DeepEqual(fields, want) {
		t.Errorf("fields: got %v, want %v", fields, want)
	}
	var codes, wanted []string
	for _, n := range got["notes"].([]any) {
		if code := n.(map[string]any)["code"].(string); !slices.Contains(beside, code) {
			codes = append(codes, code)
		}
	}
	failed := false
	for _, d := range v.Diagnostics {
		wanted = append(wanted, d.Code)
		failed = failed || d.Severity == "error" && d.Code != "move_batch_count_mismatch"
	}
	if !slices.Equal(codes, wanted) {
		t.Errorf("notes: got %v, want %v", codes, wanted)
	}
	if failed != (got["error"] != nil) {
		t.Errorf("error: got %v, want one: %v", got["error"], failed)
	}
}

// TestMMORedaction proves that the fields which the vectors call secret are masked, and
// the others not.
func TestMMORedaction(t *testing.T) {
	for _, v := range mmoVectors(t) {
		for _, r := range records(objects(t, good(t, append([]string{"decode", "-T", "json", v.capture(t)}, asMMO...)...))) {
			for name, value := range r["fields"].(map[string]any) {
				if (value == "***") != slices.Contains(v.Redact, name) {
					t.Errorf("%s: %s is %v, to be redacted are %v", v.Name, name, value, v.Redact)
				}
			}
		}
	}
}

// secretsOf returns the tokens and passwords in a capture, as one sees who asks for them.
func secretsOf(t *testing.T, args ...string) []string {
	t.Helper()
	r := opscope(t, append([]string{"decode", "-T", "json", "--show-secrets"}, args...)...)
	if !strings.Contains(r.err, "passwords and tokens are shown") || strings.Count(r.err, "\n") > 1+strings.Count(r.err, "no records") {
		t.Errorf("it warns with %q, want one line", r.err)
	}
	var list []string
	add := func(v any) {
		if s, ok := v.(string); ok && len(s) >= shownLength && !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	for _, o := range records(objects(t, r.out)) {
		fields := o["fields"].(map[string]any)
		for name, v := range fields {
			opcode := o["opcode"].(float64)
			switch {
			case name == "enter_token", name == "udp_token":
				add(v)
			case opcode == 0x0204, opcode >= 0x0100 && opcode < 0x0200:
				if text, ok := v.(string); ok && strings.Trim(text, "0123456789") != "" {
					add(v)
				}
			}
		}
	}
	return list
}

// shownLength is how many bytes of a secret are looked for at a time: twice as many in a
// row are found wherever they begin.
const shownLength = 6

// leaked returns a way in which an output shows a part of a secret, "" for none.
func leaked(output, secret string) string {
	output = strings.ReplaceAll(output, "password", "") // the name of a field, and part of a vector's
	lower := strings.ToLower(output)
	for i := 0; i+shownLength <= len(secret); i += shownLength {
		piece := secret[i : i+shownLength]
		if strings.Contains(output, piece) {
			return piece
		}
		for _, dress := range []string{fmt.Sprintf("%x", piece), fmt.Sprintf("% x", piece)} {
			if strings.Contains(lower, dress) {
				return dress
			}
		}
	}
	for lead := range 3 {
		all := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", lead) + secret))
		if core := all[2*lead : len(all)-4]; len(core) > 0 && strings.Contains(output, core) {
			return core
		}
	}
	return ""
}

// testMessages has the schemas of the reference server's own messages.
const testMessages = "../../cmd/refserver/internal/mmo/testserver/messages"

// commandLines returns the commands that print records, with all kinds of flags; those
// about one session for more sessions than any capture has.
func commandLines() (list [][]string) {
	for _, f := range [][]string{
		{}, {"-v"}, {"-V"}, {"-x"}, {"-v", "-x"}, {"-V", "-x"}, {"--width", "-1"}, {"-V", "-x", "--width", "-1", "--color", "always"},
		{"-T", "json"}, {"-T", "json", "--raw"}, {"-T", "json", "--raw", "--summary"}, {"--tables"}, {"--tables", "-q"},
		{"--summary"}, {"-q"}, {"--hold", "0"}, {"--hold", "0", "-T", "json", "--raw"}, {"--mask-personal", "-V", "-x"},
		{"--proto", testMessages, "-V", "-x"}, {"-T", "json", "--raw", "--proto", testMessages},
		{"-o", "mmo.order:be", "-V", "-x"}, {"-o", "mmo.order:be", "-T", "json", "--raw"}, {"-c", "1", "-V", "-x"},
	} {
		list = append(list, append([]string{"decode"}, f...))
	}
	for _, session := range []string{"1", "2", "3", "4", "5"} {
		list = append(list,
			[]string{"follow", session}, []string{"follow", "-V", "-x", session}, []string{"follow", "-T", "json", "--raw", session},
			[]string{"ladder", session}, []string{"ladder", "--width", "-1", session}, []string{"ladder", "--width", "-1", "--ascii", "--hold", "0", session},
		)
	}
	return list
}

// TestNoCommandLeaks proves that no command shows a token of any capture or vector, in
// whatever dress, with whatever flags. That the search finds what is shown is proved with
// the same flags and --show-secrets.
func TestNoCommandLeaks(t *testing.T) {
	type subject struct {
		name string
		args []string
	}
	var subjects []subject
	for _, v := range mmoVectors(t) {
		if len(v.Redact) > 0 {
			subjects = append(subjects, subject{v.Name, append([]string{v.capture(t)}, asMMO...)})
		}
	}
	captures, err := filepath.Glob("../../pcaps/mmo/*.pcapng")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range thinned(captures) {
		subjects = append(subjects, subject{filepath.Base(c), []string{c}})
	}
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) {
			secrets := secretsOf(t, s.args...)
			if strings.HasSuffix(s.name, "_cut_in_string") || s.name == "tcp_stream_ends_inside_frame" {
				secrets = []string{"eyJhbGciOiJIUzI1NiJ9.eyJ"} // no field has all of it
			}
			shown := map[string]bool{}
			for _, f := range commandLines() {
				args := slices.Concat(f, s.args)
				r := opscope(t, args...)
				bare := opscope(t, append(args, "--show-secrets")...)
				again := ""
				if f[0] == "decode" && slices.Contains(f, "json") {
					again = opscopeReading(t, strings.NewReader(r.out), append([]string{"decode", "-"}, f[3:]...)...).out +
						opscopeReading(t, strings.NewReader(bare.out), append([]string{"decode", "-T", "json"}, append(f[3:], "-")...)...).out
				}
				for _, secret := range secrets {
					if l := leaked(r.out+r.err, secret); l != "" {
						t.Errorf("opscope %s: shows %q of %q", strings.Join(args, " "), l, secret)
					}
					if l := leaked(again, secret); l != "" {
						t.Errorf("opscope %s, read again: shows %q of %q", strings.Join(args, " "), l, secret)
					}
					shown[f[0]] = shown[f[0]] || leaked(bare.out, secret) != ""
				}
			}
			for _, command := range []string{"decode", "follow", "ladder"} {
				if len(secrets) > 0 && !shown[command] {
					t.Errorf("%s never shows what is looked for: the test proves nothing", command)
				}
			}
		})
	}
}

// TestAnotherGame decodes a game that nobody made, by its .proto files and its map of ids,
// with flags alone.
func TestAnotherGame(t *testing.T) {
	const dir = "../../testdata/proto/ashfall"
	for _, v := range readVectors(t, dir+"/vectors.json") {
		for _, flags := range [][]string{
			{"--proto", dir}, // by the ports that it declares
			{"--proto", dir, "-d", fmt.Sprintf("tcp.port==%d,ashfall", vectorTCP), "-d", fmt.Sprintf("udp.port==%d,ashfall", vectorUDP)},
			{"--proto", dir, "--protocol", "ashfall"},
		} {
			got := records(objects(t, good(t, slices.Concat([]string{"decode", "-T", "json"}, flags, []string{v.capture(t)})...)))
			if len(got) != 1 {
				t.Errorf("%s: %d records", v.Name, len(got))
				continue
			}
			r := got[0]
			if v.Packet != nil && r["message"] != *v.Packet || r["protocol"] != "ashfall" || r["size"] != float64(v.Size) {
				t.Errorf("%s: got %v %v, %v bytes", v.Name, r["protocol"], r["message"], r["size"])
			}
			if v.Schema == "unknown" {
				continue
			}
			want := v.Fields
			for _, path := range v.Redact {
				want = masking(want, strings.Split(path, "."))
			}
			if !reflect.DeepEqual(r["fields"], map[string]any(want)) {
				t.Errorf("%s: got %v, want %v", v.Name, r["fields"], want)
			}
		}
	}
}

// masking returns fields with a mask in the place of one.
func masking(fields map[string]any, path []string) map[string]any {
	c := map[string]any{}
	for k, v := range fields {
		c[k] = v
	}
	if len(path) > 1 {
		c[path[0]] = masking(c[path[0]].(map[string]any), path[1:])
	} else {
		c[path[0]] = "***"
	}
	return c
}

// TestProtoFlags proves what is said about directories that are no use.
func TestProtoFlags(t *testing.T) {
	empty := t.TempDir()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--proto", "/nowhere"}, "--proto: "},
		{[]string{"--proto", empty}, "--proto " + empty},
		{[]string{"-o", "mmo.order:middle"}, "-o mmo.order:be"},
		{[]string{"-o", "mmo.colour:be"}, "-o mmo.order:be"},
		{[]string{"-o", "chess.order:be"}, "try one of: "},
	} {
		r := opscope(t, append([]string{"decode", sessionCapture}, c.args...)...)
		if r.code != exitUsage || !strings.Contains(r.err, c.want) {
			t.Errorf("opscope decode %s: exit code %d, %q", strings.Join(c.args, " "), r.code, r.err)
		}
	}
}

// TestByteOrderOption reads numbers in the other order, of the header and of the batch.
func TestByteOrderOption(t *testing.T) {
	attack := &vector{Name: "attack", Transport: "tcp", Direction: "c2s", Hex: "000b0231" + "08071002" + "18ac02"}
	batch := &vector{Name: "batch", Transport: "udp", Direction: "s2c", Hex: "00380213" + "0001" + "0000" + "000001977420dc7b" +
		"00000000000003e9" + "0000012c" + strings.Repeat("3fc00000", 7)}
	args := append([]string{"decode", "-T", "json", "-o", "mmo.order:be"}, asMMO...)
	got := records(objects(t, good(t, append(args, attack.capture(t))...)))
	if len(got) != 1 || got[0]["message"] != "AttackReq" ||
		!reflect.DeepEqual(got[0]["fields"], map[string]any{"attack_sequence": 7.0, "combo_step": 2.0, "client_time_ms": "300"}) {
		t.Errorf("got %v", got)
	}
	got = records(objects(t, good(t, append(args, batch.capture(t))...)))
	if len(got) != 1 || len(got[0]["notes"].([]any)) != 0 {
		t.Fatalf("got %v", got)
	}
	fields := got[0]["fields"].(map[string]any)
	entry := fields["entries"].([]any)[0].(map[string]any)
	if fields["server_time_ms"] != "1750000000123" || entry["character_id"] != "1001" || entry["last_processed_input_sequence"] != 300.0 || entry["yaw"] != 1.5 {
		t.Errorf("got %v", fields)
	}
}

// TestMaskPersonal proves that one flag masks what persons wrote, of every protocol and in
// every output, and that they show without it.
func TestMaskPersonal(t *testing.T) {
	for _, c := range []struct{ capture, said string }{
		{"mmo/chat-attack.pcapng", "hello, is there somebody?"},
		{"wulfram/session.pcapng", "hello there"},
		{"netrek/tcp.pcapng", ""},
	} {
		capture := "../../pcaps/" + c.capture
		said := c.said
		if said == "" {
			said = personsIn(t, capture)
		}
		for _, flags := range [][]string{
			{"decode"}, {"decode", "-V", "-x"}, {"decode", "-T", "json", "--raw"}, {"follow", "1"}, {"follow", "1", "-V", "-x"}, {"ladder", "1"},
		} {
			args := append(slices.Clone(flags), "--width", "-1", capture)
			if leaked(good(t, args...), said) == "" {
				t.Errorf("%s %v: does not show %q", c.capture, flags, said)
			}
			if l := leaked(good(t, append(args, "--mask-personal")...), said); l != "" {
				t.Errorf("%s %v: shows %q of %q", c.capture, flags, l, said)
			}
		}
	}
}

// TestMaskPersonalInReports proves it of names, which tables know, too, and of samples.
func TestMaskPersonalInReports(t *testing.T) {
	for _, c := range []struct {
		capture, said string
		commands      []string
	}{
		{"lotr2/lobby.pcapng", "Player1", []string{"decode -V -x", "decode -T json --raw", "decode --tables", "tables", "tables -T json"}},
		{"mmo/chat-attack.pcapng", "hello, is there somebody?", []string{"unknown", "unknown -T json"}},
	} {
		shown := regexp.MustCompile(fmt.Sprintf("%s|%x|% x", regexp.QuoteMeta(c.said), c.said, c.said))
		for _, line := range c.commands {
			args := append(strings.Fields(line), "../../pcaps/"+c.capture)
			if !shown.MatchString(good(t, args...)) {
				t.Errorf("%s %s: does not show %q", line, c.capture, c.said)
			}
			if s := shown.FindString(good(t, append(args, "--mask-personal")...)); s != "" {
				t.Errorf("%s %s: shows %q", line, c.capture, s)
			}
		}
	}
}

// personsIn returns a text that somebody wrote in a capture of Netrek.
func personsIn(t *testing.T, capture string) string {
	t.Helper()
	for _, r := range records(objects(t, good(t, "decode", "-T", "json", capture))) {
		if text, ok := r["fields"].(map[string]any)["mesg"].(string); ok && r["message"] == "CP_MESSAGE" && !strings.HasPrefix(text, "@") {
			return text
		}
	}
	t.Fatalf("nobody says anything in %s", capture)
	return ""
}
