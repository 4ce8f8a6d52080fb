import{a as o,b as r}from"./chunk-OZ2E4MB3.js";import"./chunk-YILQAQDG.js";import"./chunk-M5N3YIFX.js";import"./chunk-J2CGV2ZJ.js";import"./chunk-WKYJCQHX.js";export{r as Uploads,o as fileSize};
