package acl

import "slices"

// Capabilities of a namespace, as groups of those that a short word stands for.
func readers() []string {
	return []string{
		"list-jobs", "parse-job", "read-job", "csi-list-volume", "csi-read-volume", "read-job-scaling", "list-scaling-policies",
		"read-scaling-policy", "host-volume-read",
	}
}

func writers() []string {
	return append(readers(), "scale-job", "submit-job", "dispatch-job", "read-logs", "read-fs", "alloc-exec", "alloc-lifecycle",
		"csi-mount-volume", "csi-write-volume", "submit-recommendation", "host-volume-create")
}

// submits are what submit-job was split into in 2.0.
func submits() []string {
	return []string{
		"register-job", "revert-job", "deregister-job", "purge-job", "evaluate-job", "plan-job", "tag-job-version", "stable-job",
		"fail-deployment", "pause-deployment", "promote-deployment", "unblock-deployment", "cancel-deployment", "set-alloc-health-deployment",
		"gc-allocation", "pause-allocation", "force-periodic-job", "delete-service-registration",
	}
}

// known tells whether a word is a capability of a namespace.
func known(word string) bool {
	others := []string{"deny", "alloc-node-exec", "sentinel-override", "csi-register-plugin", "host-volume-register", "host-volume-write", "host-volume-delete"}
	return slices.Contains(slices.Concat(writers(), submits(), others), word)
}

// ofNamespace are the capabilities that a policy's word stands for.
func ofNamespace(word string) []string {
	switch word {
	case "deny":
		return []string{"deny"}
	case "read":
		return readers()
	case "write":
		return writers()
	case "scale":
		return []string{"list-scaling-policies", "read-scaling-policy", "read-job-scaling", "scale-job", "read-job", "submit-recommendation"}
	default:
		return nil
	}
}

// ofVariables adds what a capability over a path brings along.
func ofVariables(words []string) []string {
	if slices.Contains(words, "deny") {
		return []string{"deny"}
	}
	for _, w := range words {
		if w == "read" || w == "write" {
			words = append(words, "list")
		}
	}
	return words
}

// grants tells whether a set of capabilities holds the wanted one, or one that stands
// for it where it is asked for.
func grants(have []string, want string) bool {
	has := func(word string) bool { return slices.Contains(have, word) }
	switch {
	case has("deny"):
		return false
	case has(want):
		return true
	case want == "scale-job" || slices.Contains(submits(), want):
		return has("submit-job")
	case want == "read-job-scaling":
		return has("read-job")
	case want == "list-scaling-policies" || want == "read-scaling-policy":
		return has("list-jobs") && has("read-job")
	default:
		return false
	}
}
