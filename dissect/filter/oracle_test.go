package filter

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"opscope/dissect"
	"opscope/schema"
	"opscope/schema/wire"
)

// twoSecrets are as long as each other, and have no byte in common.
var twoSecrets = [2]string{"secret", "hunTwo"}

// repeating returns a login, and what its session repeats of it: in a name, behind the last
// field, in notes, in errors and in an event. Of two secrets the records differ in nothing
// else.
func repeating(t testing.TB, p *schema.Protocol, secret string) []*dissect.Record {
	secrets := &dissect.Secrets{}
	secrets.Add([]byte(secret))
	frame := func(message, raw string, d dissect.Direction) *dissect.Record {
		k := p.PacketNamed(message)
		r := &dissect.Record{Protocol: "game", Message: message, Opcode: int(k.Opcode), Packet: k, Direction: d, Size: len(raw), Raw: []byte(raw), Secrets: secrets}
		r.Layout = k.Of(d.Sender())[0]
		r.Body.Reset(r.Raw)
		if err := new(schema.Decoder).Decode(p, message, r.Layout, &r.Body, 0, 8*len(raw)); err != nil {
			t.Fatal(err)
		}
		return r
	}
	login := frame("LOGIN", "\x08"+secret+"\x00"+secret, dissect.ClientToServer)
	login.Rest = []byte(secret)
	named := frame("RESULT", strings.Replace(result, "Hi \xc5 there", "I am "+secret, 1), dissect.ServerToClient)
	named.Notes = []dissect.Note{{Code: "conflict", Text: "not " + secret}, {Code: "retransmission"}}
	broken := frame("LOGIN", "\x08\x00"+secret, dissect.ClientToServer)
	broken.Rest = broken.Raw[2:]
	broken.Err = &wire.Error{Layer: "game", Path: "LOGIN.password", Want: "not " + secret, Got: secret, Kind: wire.Malformed}
	unknown := &dissect.Record{Protocol: "game", Message: "unknown(0x99)", Opcode: 0x99, Raw: []byte("\x99\x00" + secret), Secrets: secrets}
	unknown.Rest = unknown.Raw[1:]
	event := &dissect.Record{Type: dissect.EventRecord, Opcode: -1, Code: "closed", Text: "by " + secret, Secrets: secrets}
	return []*dissect.Record{login, named, broken, unknown, event}
}

// differing returns the records that a filter wants with one secret and not with the
// other: there must be none.
func differing(f *Filter, records [2][]*dissect.Record) (list []string) {
	for i, r := range records[0] {
		if f.Match(r) != f.Match(records[1][i]) {
			list = append(list, r.Type.String()+" "+r.Message)
		}
	}
	return list
}

// guesses are what somebody would try who wants to know a secret.
func guesses(secret string) (list []string) {
	words := []string{secret, secret[:1], secret[:3], secret[2:], fmt.Sprintf("%x", secret), fmt.Sprintf("%x", secret[:1]), "I am " + secret, "by " + secret}
	for _, of := range []string{
		"password", "name", "rest", "notes.text", "notes[0].text", "error.want", "error.got", "text", "fields.name", "entities", "fields", `fields["1"]`,
	} {
		for _, w := range words {
			for _, operator := range []string{"==", "!=", "<", "<=", ">", ">=", "in", "not in", "contains", "not contains", "startsWith", "endsWith", "matches", "not matches"} {
				list = append(list, fmt.Sprintf("%s %s %q", of, operator, w), fmt.Sprintf("not (%s %s %q)", of, operator, w))
			}
			list = append(list, fmt.Sprintf(`%s in ["x", %q, "y"]`, of, w), fmt.Sprintf(`%s in %q..%q`, of, w, w+"z"), fmt.Sprintf(`any(notes, .text contains %q)`, w),
				fmt.Sprintf(`count(notes, .text == %q) == 1`, w))
		}
		list = append(list, fmt.Sprintf("len(%s) == %d", of, len(secret)), fmt.Sprintf("len(%s) < %d", of, len(secret)), fmt.Sprintf("%s == name", of),
			fmt.Sprintf("%s == text", of), fmt.Sprintf("rest == %s", of), fmt.Sprintf("%s == notes.text", of), of, "not "+of)
	}
	return list
}

// TestNoOracle asks about two secrets, each as if it were known: the answers are the same.
// Once they are shown, they are not.
func TestNoOracle(t *testing.T) {
	p := loadGame(t)
	records := [2][]*dissect.Record{repeating(t, p, twoSecrets[0]), repeating(t, p, twoSecrets[1])}
	for _, show := range []bool{false, true} {
		l := NewLanguage([]*schema.Protocol{p}, dissect.Privacy{ShowSecrets: show})
		compiled, told := 0, map[string]bool{}
		for _, expression := range append(guesses(twoSecrets[0]), guesses(twoSecrets[1])...) {
			f, err := l.Compile(expression)
			if err != nil {
				continue
			}
			compiled++
			list := differing(f, records)
			if len(list) > 0 && !show {
				t.Errorf("%s tells the secret of %v", expression, list)
			}
			for _, what := range list {
				told[what] = true
			}
		}
		if compiled < 1000 || show && len(told) != len(records[0])-1 { // the two logins have one name
			t.Errorf("of %d filters, when secrets are shown, %v tell", compiled, told)
		}
	}
}

// TestPersonalTexts compares what persons wrote, unless that is masked.
func TestPersonalTexts(t *testing.T) {
	p := loadGame(t)
	records := game(t, p)
	for _, private := range []bool{false, true} {
		l := NewLanguage([]*schema.Protocol{p}, dissect.Privacy{MaskPersonal: private})
		f, err := l.Compile(`nick == "Ada"`)
		switch {
		case !private && (err != nil || !f.Match(records["result"])):
			t.Errorf("a name that is shown: %v", err)
		case private && (err == nil || !strings.Contains(err.Error(), "nick is masked")):
			t.Errorf("a name that is masked: %v", err)
		}
	}
}

// FuzzNoOracle wants no expression at all to tell two secrets apart.
func FuzzNoOracle(f *testing.F) {
	all := guesses(twoSecrets[0])
	for i := 0; i < len(all); i += 37 {
		f.Add(all[i])
	}
	for _, seed := range []string{"len(name) + len(rest) > 3", "any(entities, .id == 3) or notes.text < error.got", "size - len(rest) > 2", "rest[0] == 115"} {
		f.Add(seed)
	}
	p := loadGame(f)
	records := [2][]*dissect.Record{repeating(f, p, twoSecrets[0]), repeating(f, p, twoSecrets[1])}
	l := NewLanguage([]*schema.Protocol{p}, dissect.Privacy{})
	f.Fuzz(func(t *testing.T, expression string) {
		compiled, err := l.Compile(expression)
		if err != nil {
			return
		}
		if list := differing(compiled, records); len(list) > 0 {
			t.Errorf("%q tells the secret of %v", expression, slices.Compact(list))
		}
	})
}
