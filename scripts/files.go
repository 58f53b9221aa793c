package scripts

import (
	"embed"
	"io/fs"
)

//go:embed slurm/*.lua slurm/task_prolog slurm/task_prolog.conf
var files embed.FS

// Slurm returns the files of the folder slurm by their names: the submission plugin,
// a job_submit.lua, the task prolog and its configuration.
func Slurm() (fs.FS, error) { return fs.Sub(files, "slurm") }
