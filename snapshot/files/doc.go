// Package files stores uploaded files, pictures, thumbnails and data exports in a directory.
//
//	Save, FinishUpload ─▶ content/<hash>           rows name the hash
//	SaveAvatar, SaveLogo ─▶ pictures/<name>.png    rows name the picture
//	NewExport ─▶ exports/<name>                    rows name the export
//	BeginUpload, AppendUpload ─▶ unfinished/<id>   uploads in pieces, with their metadata
//	Thumbnail, FirstFrame ─▶ thumbnails/           a cache; evicted when it is full
//	                         incoming/             files that are being written; emptied by Open
//
// The contract:
//
//   - Content is named by the hash of its owner's space and its bytes. It is written once and never changed.
//   - A file appears complete and synced, or not at all.
//   - A file is stored before the row that names it, and removed after no row names it. Between Save and Release, when
//     the row is not stored yet, content is not removed. Sweep removes files that a crash left without a row.
//   - All memory and disk use that requests can cause is bounded by constants of this package.
package files
