package filter

import (
	"fmt"
	"slices"
	"strings"

	"opscope/schema"
)

// Opcodes compiles a list of messages, by name, or by opcode in decimal or hexadecimal,
// with commas between them: "D_ACK,0x35,33". Of an empty list it returns nil, which
// wants everything.
func (l *Language) Opcodes(list []string) (*Filter, error) {
	s := &subject{operand: keyOperand{keys["opcode"]}, path: "opcode", kinds: signed}
	m := &membership{of: s}
	for _, words := range list {
		for word := range strings.SplitSeq(words, ",") {
			if word = strings.TrimSpace(word); word == "" {
				continue
			}
			item := &literal{kinds: text, text: []byte(word), opcode: true}
			if v, ok := parseNumber(word); ok && v.integer() {
				item = &literal{kinds: number, number: v}
			} else if !slices.Contains(l.messages, word) && !strings.HasPrefix(word, "unknown(") {
				return nil, fmt.Errorf("no message %q%s", word, schema.Hint(word, slices.Clone(l.messages)))
			}
			m.ranges = append(m.ranges, interval{from: item})
		}
	}
	if len(m.ranges) == 0 {
		return nil, nil
	}
	return &Filter{m, keys["opcode"].look, l.scope()}, nil
}
