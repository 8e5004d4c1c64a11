package filter

import (
	"errors"

	"github.com/expr-lang/expr/file"
)

// Place returns where in its expression the error of Compile is, as a line and a column
// that both count from 0, and what is wrong there, without the caret. It returns false for
// an error about all of the expression.
func Place(err error) (line, column int, message string, ok bool) {
	var e *file.Error
	if !errors.As(err, &e) {
		return 0, 0, "", false
	}
	return max(e.Line-1, 0), max(e.Column, 0), e.Message, true
}
