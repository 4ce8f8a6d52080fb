// Package clamd asks the virus scanner ClamAV about files, by the command INSTREAM of its daemon. The contract:
//
//   - Scan sends the whole file and returns nil only if the scanner has found nothing in it.
//   - Files that the scanner cannot examine, because it is down or the file is larger than its limits, are refused or
//     accepted as Config.Accept says. Accepted ones are logged.
package clamd
