package sink

import (
	"strings"

	"github.com/fatih/color"

	"opscope/dissect"
)

// ink is a pair of escape strings around coloured text; both are empty without
// colour.
type ink struct{ on, off string }

// inkOf takes the escape strings out of a Color, once, so that no record pays
// for it. The Color is the caller's own: no package-wide switch is touched.
func inkOf(attributes ...color.Attribute) ink {
	c := color.New(attributes...)
	c.EnableColor()
	on, off, _ := strings.Cut(c.Sprint("\x00"), "\x00")
	return ink{on, off}
}

// palette is the colours of the text sink. The zero palette has none. Colour
// repeats what the words say: direction, severity, and what is a name.
type palette struct {
	direction [3]ink // by dissect.Direction
	severity  [3]ink // by dissect.Severity
	message   ink
	name      ink
	quiet     ink // what matters less
	failure   ink
	fields    []ink // in turn, for the bytes of neighbouring fields
}

func newPalette() palette {
	var p palette
	p.direction[dissect.UnknownDirection] = inkOf(color.FgHiBlack)
	p.direction[dissect.ClientToServer] = inkOf(color.FgGreen)
	p.direction[dissect.ServerToClient] = inkOf(color.FgBlue)
	p.severity[dissect.Info] = inkOf(color.FgHiBlack)
	p.severity[dissect.Notice] = inkOf(color.FgYellow)
	p.severity[dissect.Warning] = inkOf(color.FgMagenta)
	p.message = inkOf(color.Bold)
	p.name = inkOf(color.FgCyan)
	p.quiet = inkOf(color.FgHiBlack)
	p.failure = inkOf(color.FgRed, color.Bold)
	p.fields = []ink{
		inkOf(color.FgGreen), inkOf(color.FgYellow), inkOf(color.FgBlue),
		inkOf(color.FgMagenta), inkOf(color.FgCyan), inkOf(color.FgRed),
	}
	return p
}

// Paint returns a word in the colour of what fails, or of what deserves attention.
func Paint(word string, failure bool) string {
	k := inkOf(color.FgYellow)
	if failure {
		k = inkOf(color.FgRed, color.Bold)
	}
	return k.on + word + k.off
}
