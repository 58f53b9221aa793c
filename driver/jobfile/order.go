package jobfile

import (
	"bytes"
	"cmp"
	"slices"
)

// Compare orders places of one file: by line, then by column.
func (p Pos) Compare(o Pos) int {
	return cmp.Or(cmp.Compare(p.Line, o.Line), cmp.Compare(p.Column, o.Column))
}

// Err returns the faults in the order of their places as one error of type
// Errors, and nil where there is none.
func (es Errors) Err() error {
	if len(es) == 0 {
		return nil
	}
	out := slices.Clone(es)
	slices.SortStableFunc(out, func(a, b Error) int {
		return cmp.Or(a.Pos.Compare(b.Pos), cmp.Compare(a.Found, b.Found))
	})
	return out
}

// At is the place of a byte of a file, of the first behind its end where there is none.
func At(filename string, src []byte, offset int) Pos {
	before := src[:min(offset, len(src))]
	return Pos{Filename: filename, Line: bytes.Count(before, []byte("\n")) + 1, Column: len(before) - bytes.LastIndexByte(before, '\n')}
}
