package command

import (
	"fmt"
	"slices"
	"strings"

	"pitchpipe/controller/evaluate/records"
)

// tableFlag is a flag that names tables.
type tableFlag struct {
	name    string
	formats []records.Format
	files   *[]string
}

// following deals the arguments behind the flags: nobody can see any more which flag each
// of them followed, as in --samples a b --trials c d. They go to the one flag that was
// given; of several, to the one that takes tables with such columns.
func following(args []string, flags ...tableFlag) error {
	var given []tableFlag
	for _, f := range flags {
		if len(*f.files) > 0 {
			given = append(given, f)
		}
	}
	if len(flags) == 1 {
		given = flags
	}
	for _, file := range args {
		if len(given) == 1 {
			*given[0].files = append(*given[0].files, file)
			continue
		}
		format, err := records.FormatOf(file)
		if err != nil {
			return fmt.Errorf("%w records: %w", errInvalid, err)
		}
		i := slices.IndexFunc(flags, func(f tableFlag) bool { return slices.Contains(f.formats, format) })
		if i < 0 {
			var names []string
			for _, f := range flags {
				names = append(names, "--"+f.name)
			}
			return fmt.Errorf("%w command line: %s is a table of %s: want those of %s", errInvalid, file, format, strings.Join(names, ", "))
		}
		*flags[i].files = append(*flags[i].files, file)
	}
	return nil
}

func trialsFlag(files *[]string) tableFlag {
	return tableFlag{"trials", []records.Format{records.Trials}, files}
}

func samplesFlag(files *[]string) tableFlag {
	return tableFlag{"samples", []records.Format{records.Samples}, files}
}

func curvesFlag(files *[]string) tableFlag {
	return tableFlag{"curves", []records.Format{records.Curves, records.Adaptations}, files}
}
