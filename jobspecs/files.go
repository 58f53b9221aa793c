package jobspecs

import (
	"embed"
	"io/fs"
)

//go:embed slurm nomad
var files embed.FS

// Files returns the job files, as slurm/NAME.sbatch and nomad/NAME.nomad.hcl.
func Files() fs.FS { return files }
