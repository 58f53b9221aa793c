package check

import (
	"path"
	"regexp"
	"strings"
)

// PrologConf is what task_prolog.conf says.
type PrologConf struct{ SiteDir, SiteUser, OwnerDir, Exporter, Listener string }

// ReadPrologConf reads it as the task prolog does: lines NAME=value, where the last of a name
// counts, nothing is trimmed, and others are passed over.
func ReadPrologConf(text string) PrologConf {
	v := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		v[name] = value
	}
	return PrologConf{SiteDir: v["site_dir"], SiteUser: v["site_user"], OwnerDir: v["owner_dir"], Exporter: v["exporter"], Listener: v["listener"]}
}

// SettingsDir is the folder that the task prolog reads for jobs of this controller: the
// site's, or that of the owner below the home directory.
func (c PrologConf) SettingsDir(m Mode, home string) string {
	switch {
	case m == Site:
		return c.SiteDir
	case c.OwnerDir == "" || path.IsAbs(c.OwnerDir):
		return c.OwnerDir
	}
	return path.Join(home, c.OwnerDir)
}

// confOf is the file that a task prolog takes its settings from: what the first line conf= of
// the script says, empty where there is none.
func confOf(prolog string) string {
	m := regexp.MustCompile(`(?m)^[ \t]*conf=(.*?)\r?$`).FindStringSubmatch(prolog)
	if m == nil {
		return ""
	}
	return strings.Trim(m[1], `'" `)
}

// submitParts is what a job_submit.lua does of ours.
type submitParts struct {
	Loads  bool   // the module is loaded
	Calls  bool   // and called
	Fault  string // reject or warn; empty = it does not say
	Folder string // of the module; empty = it does not say
}

// readSubmit looks for the parts that a site takes over. Comments do not count, and the last
// of two equal assignments does.
func readSubmit(text string) submitParts {
	text = regexp.MustCompile(`--.*`).ReplaceAllString(text, "")
	assigned := func(name string) (value string) {
		for _, m := range regexp.MustCompile(`(?m)^\s*(?:local\s+)?`+name+`\s*=\s*(?:"(.*)"|'(.*)')\s*$`).FindAllStringSubmatch(text, -1) {
			value = m[1] + m[2]
		}
		return value
	}
	return submitParts{
		Loads: regexp.MustCompile(`require.*"pitchpipe"`).MatchString(text), Calls: strings.Contains(text, "pitchpipe.submit("),
		Fault: assigned("pitchpipe_on_fault"), Folder: assigned("pitchpipe_folder"),
	}
}
