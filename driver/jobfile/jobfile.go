package jobfile

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Format names a job file format.
type Format string

// The formats.
const (
	Sbatch   Format = "sbatch"
	NomadHCL Format = "nomadhcl"

	NomadJSON Format = "nomadjson" // a registered job as Nomad's API shows it
)

// Pos is a place in a job file. Line and Column count from 1, Column in bytes.
type Pos struct {
	Filename string `json:"file"`
	Line     int    `json:"line"` // 0 = the whole file
	Column   int    `json:"column"`
}

// String prints file:line:column, or only the name without a line.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.Filename
	}
	return fmt.Sprintf("%s:%d:%d", p.Filename, p.Line, p.Column)
}

// Error is one fault of a job file.
type Error struct {
	Pos

	Found string `json:"found"`          // what was found, such as `unknown key "knobb"`
	Want  string `json:"want,omitempty"` // what is allowed there, and the nearest known word where one is near
}

// Error prints one line: file:line:column: found; want.
func (e Error) Error() string {
	if e.Want == "" {
		return e.Pos.String() + ": " + e.Found
	}
	return e.Pos.String() + ": " + e.Found + "; " + e.Want
}

// Errors are all faults of a job file, in the order of their places.
type Errors []Error

// Error prints one fault a line.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Job is what a job file asks for.
type Job struct {
	Format      Format
	Name        string
	Partition   string // or namespace
	Account     string
	QOS         string
	Cores       int           // 1 where the file says nothing
	MemoryBytes int64         // 0 = no limit
	TimeLimit   time.Duration // 0 = none
	Dir         string        // empty = where it was submitted
	Output      string        // pattern of the output file, empty = the driver's choice
	NoRequeue   bool          // the owner refuses restarts
	Observed    string        // what keeps its scheduler's driver from changing it, such as --nodes=2 or count = 3
	Whole       bool          // an sbatch script that gets whole nodes, whatever it asks for
	OpenMode    string        // of the output, append or truncate; empty = the file does not say
	Begin       string        // of an sbatch script: when it begins; empty = the file does not say, as with the next two
	Export      string        // of an sbatch script: which variables its job gets
	Comment     string        // of an sbatch script
	Clusters    Pos           // of the option of an sbatch script that names clusters; zero = none

	Script []byte   // an sbatch script, run by its own interpreter
	Argv   []string // or a command and its arguments

	Env  map[string]string // that the file sets, as far as it can be read without running it
	Meta map[string]string

	// Fixed are the variables of Env that an sbatch script sets to a literal,
	// whatever its environment says, and where: to set them from outside changes
	// nothing.
	Fixed map[string]Pos

	// Computed are the variables that an sbatch script takes from elsewhere, as from
	// $SLURM_CPUS_PER_TASK, whatever its environment says, and where.
	Computed map[string]Pos

	// Follow are the variables that an sbatch script takes from $SLURM_CPUS_PER_TASK, at least where its
	// environment has none, and where.
	Follow map[string]Pos

	// Command identifies what is run with inputs and numbers left out: equal for
	// two runs of the same thing on different inputs or under other settings.
	Command string

	// Stanza is the tuning block, nil where there is none.
	Stanza *Block

	// Warnings are comments that look like lines of the stanza, and options that are left to Slurm.
	Warnings Errors
}

// Live reports whether the tuning block names an action, or a knob that reaches the job through
// its settings file.
func (j *Job) Live() bool {
	return j.Acts() || j.Stanza != nil && slices.ContainsFunc(j.Stanza.Blocks, func(b *Block) bool {
		return b.Type == "knob" && slices.ContainsFunc(b.Attrs, Attr.live)
	})
}

// Acts reports whether the tuning block names an action.
func (j *Job) Acts() bool {
	return j.Stanza != nil && slices.ContainsFunc(j.Stanza.Blocks, func(b *Block) bool { return b.Type == "action" })
}

// Applies reports whether the tuning block asks for the mode apply, as one with a search does by default.
func (j *Job) Applies() bool {
	i := slices.IndexFunc(j.Stanza.Blocks, func(b *Block) bool { return b.Type == "search" })
	if i < 0 || j.Stanza.has("mode") {
		return j.Stanza.Text("mode") == "apply"
	}
	return !j.Stanza.Blocks[i].has("system") || j.Stanza.Blocks[i].Text("system") == "pipelined"
}

func (a Attr) live() bool {
	return a.Name == "live" && (a.Value.Kind == Bool && a.Value.Bool || a.Value.Text == "true")
}

// Block is one block of a tuning stanza as it was written: the top level has no
// Type.
type Block struct {
	Type   string // knob, action, progress, quality, profile, checkpoint, budget, search
	Label  string // the name of the knob or action
	Pos    Pos
	Attrs  []Attr
	Blocks []*Block

	LabelPos Pos // of Label, where there is one
}

// Text is the text of a key's value, empty where the block lacks the key.
func (b *Block) Text(name string) string {
	i := slices.IndexFunc(b.Attrs, func(a Attr) bool { return a.Name == name })
	if i < 0 {
		return ""
	}
	return b.Attrs[i].Value.Text
}

func (b *Block) has(name string) bool {
	return slices.ContainsFunc(b.Attrs, func(a Attr) bool { return a.Name == name })
}

// Attr is one key of a block.
type Attr struct {
	Name     string
	Pos      Pos
	Value    Value
	ValuePos Pos
}

// Value is what was written: exactly one of the fields counts, by Kind.
type Value struct {
	Kind   Kind
	Text   string // as written for String; the literal for Number
	Number float64
	Bool   bool
	List   []Item
}

// Item is one element of a list.
type Item struct {
	Pos   Pos
	Value Value
}

// Kind is the type of a Value.
type Kind uint8

// The kinds. Bare is a word or number of a #TUNE line, which has no types: the key decides what
// it is read as.
const (
	String Kind = iota
	Number
	Bool
	List
	Bare
	Other // null, an object, or an expression that cannot be known before the job runs
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

// Fault is the one fault of a file as a whole.
func Fault(filename, found, want string) Errors {
	return Errors{{Pos: Pos{Filename: filename, Line: 1, Column: 1}, Found: found, Want: want}}
}

// At is the place of a byte of a file, or of the first after its end without one.
func At(filename string, src []byte, offset int) Pos {
	before := src[:min(offset, len(src))]
	return Pos{Filename: filename, Line: bytes.Count(before, []byte("\n")) + 1, Column: len(before) - bytes.LastIndexByte(before, '\n')}
}
