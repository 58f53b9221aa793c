package detect

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"

	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/nomadhcl"
	"pitchpipe/driver/jobfile/nomadjson"
	"pitchpipe/driver/jobfile/sbatch"
)

// Parser reads a job file; see Parse.
type Parser func(filename string, src []byte, vars map[string]string) (*jobfile.Job, error)

// For is the parser for job files that the named driver runs.
func For(driver string) Parser {
	switch driver {
	case "slurm":
		return ParseForSlurm
	case "nomad":
		return ParseForNomad
	}
	return Parse
}

// Parse reads a job file of either format. The error, if any, is of type
// jobfile.Errors. Batch scripts have no variables, so that values for some are an
// error there.
func Parse(filename string, src []byte, vars map[string]string) (*jobfile.Job, error) {
	return parse(filename, src, vars, nomadhcl.Parse, sbatch.Parse)
}

// ParseForSlurm reads a job file as Parse does, but takes what of a batch script
// only Slurm itself can run.
func ParseForSlurm(filename string, src []byte, vars map[string]string) (*jobfile.Job, error) {
	return parse(filename, src, vars, nomadhcl.Parse, sbatch.ParseForSlurm)
}

// ParseForNomad reads a job file as Parse does, but leaves what only a Nomad agent
// understands to it, and reads registered jobs as its API shows them: their names end
// in .json.
func ParseForNomad(filename string, src []byte, vars map[string]string) (*jobfile.Job, error) {
	if path.Ext(filename) == ".json" {
		return nomadjson.Parse(filename, src, vars)
	}
	return parse(filename, src, vars, nomadhcl.ParseForNomad, sbatch.Parse)
}

func parse(filename string, src []byte, vars map[string]string, hcl Parser, script func(string, []byte) (*jobfile.Job, error)) (*jobfile.Job, error) {
	format, err := Format(filename, src)
	if err != nil {
		return nil, err
	}
	if format == jobfile.NomadHCL {
		return hcl(filename, src, vars)
	}
	if names := slices.Sorted(maps.Keys(vars)); len(names) > 0 {
		return nil, jobfile.Errors{{
			Pos:   jobfile.Pos{Filename: filename, Line: 1, Column: 1},
			Found: fmt.Sprintf("a value for the variable %q", names[0]),
			Want:  "a batch script has no variables; set its environment instead",
		}}
	}
	return script(filename, src)
}

// Format tells which format a job file has.
func Format(filename string, src []byte) (jobfile.Format, error) {
	switch ext := path.Ext(filename); {
	case ext == ".nomad" || ext == ".hcl":
		return jobfile.NomadHCL, nil
	case bytes.HasPrefix(src, []byte("#!")) || hasDirective(src):
		return jobfile.Sbatch, nil
	}
	return "", jobfile.Errors{{
		Pos:   jobfile.Pos{Filename: filename, Line: 1, Column: 1},
		Found: "a file of no known format",
		Want:  "want a Nomad job file (its name ends in .nomad or .hcl) or a batch script (its first line begins with #!)",
	}}
}

func hasDirective(src []byte) bool {
	for line := range bytes.Lines(src) {
		if bytes.HasPrefix(line, []byte("#SBATCH")) || bytes.HasPrefix(line, []byte("#TUNE")) {
			return true
		}
	}
	return false
}
