package doctor

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Print writes findings as a table, and below it what mends them. Those of one kind that
// stand alike for the same reason share a line.
func Print(w io.Writer, findings []Finding) error {
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for i := 0; i < len(findings); {
		name, next := alike(findings[i:])
		f := findings[i]
		if _, err := fmt.Fprintf(table, "%s\t%s\t%s\n", f.State, name, f.Why); err != nil {
			return err
		}
		i += next
	}
	if err := table.Flush(); err != nil {
		return err
	}
	said := []string{}
	for _, f := range findings {
		if f.Mend == "" || slices.Contains(said, f.Mend) {
			continue
		}
		if len(said) == 0 {
			if _, err := fmt.Fprintln(w, "\nWhat mends it:"); err != nil {
				return err
			}
		}
		said = append(said, f.Mend)
		if _, err := fmt.Fprintf(w, "  %s\n      %s\n", mended(findings, f.Mend), f.Mend); err != nil {
			return err
		}
	}
	return nil
}

// mended names all that one command mends.
func mended(findings []Finding, by string) string {
	same := slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool { return f.Mend != by })
	var names []string
	for i := 0; i < len(same); {
		name, next := alike(same[i:])
		names, i = append(names, name), i+next
	}
	return strings.Join(names, ", ")
}

// alike is how many of the first findings share a line, and the name of that.
func alike(findings []Finding) (name string, n int) {
	first := findings[0]
	kind, _, ok := strings.Cut(first.Name, "/")
	for n = 1; ok && n < len(findings); n++ {
		f := findings[n]
		if other, _, _ := strings.Cut(f.Name, "/"); other != kind || f.State != first.State || f.Why != first.Why {
			break
		}
	}
	if n > 2 {
		return fmt.Sprintf("%s and %d more of %s", first.Name, n-1, kind), n
	}
	return first.Name, 1
}
