package jobfile

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Denied lists the environment variables that no job is given: shells, linkers, language
// runtimes, tools and schedulers act on them. An entry that ends with * is a prefix.
func Denied() []string {
	return []string{
		"PATH", "HOME", "SHELL", "TMPDIR", "CDPATH", "IFS", "ENV", "SHELLOPTS", "BASHOPTS", "BASH_*", "PS4", "PROMPT_COMMAND",
		"LD_*", "GCONV_PATH", "LOCPATH", "NLSPATH", "HOSTALIASES", "GETCONF_DIR",
		"PYTHON*", "PERL*", "RUBY*", "LUA_*", "NODE_*", "R_PROFILE*", "R_ENVIRON*", "R_LIBS*", "CLASSPATH",
		"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS",
		"GIT_*", "SSH_*", "EDITOR", "VISUAL", "PAGER",
		"OMPI_MCA_*", "PMIX_MCA_*", "PRTE_MCA_*",
		"SLURM_*", "SBATCH_*", "SRUN_*", "SPANK_*", "NOMAD_*", "PITCHPIPE_*",
	}
}

// IsDenied reports whether Denied lists a variable.
func IsDenied(name string) bool {
	return slices.ContainsFunc(Denied(), func(entry string) bool {
		prefix, cut := strings.CutSuffix(entry, "*")
		return name == entry || cut && strings.HasPrefix(name, prefix)
	})
}

// ValueBytes are the bytes that a value may have, as in a character class. A shell that
// expands such a text, quoted or not, runs nothing and names one word.
const ValueBytes = `A-Za-z0-9_.,:+%/@{}=-`

// IsPlain reports whether a text has bytes of ValueBytes only.
func IsPlain(value string) bool {
	return regexp.MustCompile(`^[` + ValueBytes + `]*$`).MatchString(value)
}

// CheckValues refuses variables and values of others (flags, live knobs) that no job is given.
func CheckValues(env map[string]string, others ...map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(name) || IsDenied(name) {
			return fmt.Errorf("variable %q is not the tuner's to set", name)
		}
	}
	for _, values := range append(others, env) {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if !IsPlain(values[name]) {
				return fmt.Errorf("%s=%q: want only %s in a value", name, values[name], ValueBytes)
			}
		}
	}
	return nil
}
