package pcapfilter

import (
	"strings"
	"unicode"
)

// SyntaxError is a place in an expression that is not understood.
type SyntaxError struct {
	Expr string
	At   int // byte offset of the place
	Text string
}

// Error shows the expression with a caret under the place.
func (e *SyntaxError) Error() string {
	indent := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, e.Expr[:e.At])
	return "capture filter: " + e.Text + "\n  " + e.Expr + "\n  " + indent + "^"
}

// token is a word, a number or an operator of an expression; the last is empty.
type token struct {
	text string
	at   int // byte offset
}

// operators of more than one character come before those that they begin with.
var operators = []string{
	"&&", "||", "!=", "==", ">=", "<=", "<<", ">>",
	"(", ")", "[", "]", "!", "=", ">", "<", "+", "-", "*", "/", "%", "&", "|", "^", ":",
}

// lex splits an expression. Within brackets a colon stands before a size and a
// hyphen subtracts, unless it joins letters; elsewhere both belong to a word, as in
// fe80::1 and 2300-2400.
func lex(expr string) ([]token, error) {
	var list []token
	depth := 0
	for i := 0; i < len(expr); {
		switch c := rune(expr[i]); {
		case unicode.IsSpace(c):
			i++
		case isWord(expr[i]), depth == 0 && strings.HasPrefix(expr[i:], "::"):
			n := wordLength(expr[i:], depth > 0)
			list = append(list, token{expr[i : i+n], i})
			i += n
		default:
			op := operatorAt(expr[i:])
			if op == "" {
				return nil, &SyntaxError{expr, i, "unexpected " + quote(expr[i:])}
			}
			switch op {
			case "[":
				depth++
			case "]":
				depth--
			}
			list = append(list, token{op, i})
			i += len(op)
		}
	}
	return append(list, token{"", len(expr)}), nil
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '.' || c == '\\'
}

// wordLength returns how long the word is with which s begins.
func wordLength(s string, bracketed bool) int {
	letters := s[0] > '9' || s[0] == '_'
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case isWord(c):
		case c == '-' && (letters || !bracketed) && i+1 < len(s) && isWord(s[i+1]):
		case (c == ':' || c == '/') && !bracketed && i+1 < len(s) && (isWord(s[i+1]) || c == ':'):
		case c == ':' && !bracketed && s[i-1] == ':': // the end of fe80::
		default:
			return i
		}
	}
	return len(s)
}

func operatorAt(s string) string {
	for _, op := range operators {
		if strings.HasPrefix(s, op) {
			return op
		}
	}
	return ""
}

// quote shows the first character of s, whatever it is.
func quote(s string) string {
	for _, r := range s {
		return strings.TrimSpace(strings.ToValidUTF8(string(r), "?"))
	}
	return "the end"
}
