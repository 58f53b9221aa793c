package detect

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"

	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/nomadhcl"
	"pitchpipe/driver/jobfile/nomadjson"
	"pitchpipe/driver/jobfile/sbatch"
)

// Parser reads a job file.
type Parser func(filename string, src []byte, vars map[string]string) (*jobfile.Job, error)

// For is the parser for job files that the named driver runs. The one for slurm also takes parts
// of a batch script that only Slurm itself can run. That for nomad leaves to an agent what only it
// understands, and reads registered jobs as its API shows them. Batch scripts have no variables,
// so that values for some are an error there. The error, if any, is of type jobfile.Errors.
func For(driver string) Parser {
	return func(filename string, src []byte, vars map[string]string) (*jobfile.Job, error) {
		if driver == "nomad" && path.Ext(filename) == ".json" {
			return nomadjson.Parse(filename, src, vars)
		}
		format, err := Format(filename, src)
		names := slices.Sorted(maps.Keys(vars))
		switch {
		case err != nil:
			return nil, err
		case format == jobfile.NomadHCL && driver == "nomad":
			return nomadhcl.ParseForNomad(filename, src, vars)
		case format == jobfile.NomadHCL:
			return nomadhcl.Parse(filename, src, vars)
		case len(names) > 0:
			found := fmt.Sprintf("a value for the variable %q", names[0])
			return nil, jobfile.Fault(filename, found, "a batch script has no variables; set its environment instead")
		case driver == "slurm":
			return sbatch.ParseForSlurm(filename, src)
		}
		return sbatch.Parse(filename, src)
	}
}

// Parse reads a job file of either format for the local scheduler.
func Parse(filename string, src []byte, vars map[string]string) (*jobfile.Job, error) {
	return For("")(filename, src, vars)
}

// Format is the format of a job file.
func Format(filename string, src []byte) (jobfile.Format, error) {
	switch ext := path.Ext(filename); {
	case ext == ".nomad" || ext == ".hcl":
		return jobfile.NomadHCL, nil
	case bytes.HasPrefix(src, []byte("#!")) || regexp.MustCompile(`(?m)^#(SBATCH|TUNE)`).Match(src):
		return jobfile.Sbatch, nil
	}
	return "", jobfile.Fault(filename, "a file of no known format",
		"want a Nomad job file (its name ends in .nomad or .hcl) or a batch script (its first line begins with #!)")
}

// Fix rewrites a job file with values of its variables and a tuning stanza without its search. The
// error, if any, is of type jobfile.Errors.
func Fix(filename string, src []byte, vars map[string]string, f jobfile.Fix) ([]byte, error) {
	format := jobfile.NomadJSON
	if path.Ext(filename) != ".json" {
		var err error
		if format, err = Format(filename, src); err != nil {
			return nil, err
		}
	}
	if err := f.Check(filename, format); err != nil {
		return nil, err
	}
	switch format {
	case jobfile.NomadJSON:
		return nomadjson.Fix(filename, src, f)
	case jobfile.NomadHCL:
		return nomadhcl.Fix(filename, src, vars, f)
	default:
		return sbatch.Fix(filename, src, f)
	}
}
