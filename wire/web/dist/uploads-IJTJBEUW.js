import{a as o,b as r}from"./chunk-L7S3NL4N.js";import"./chunk-RHDRITT2.js";export{r as Uploads,o as fileSize};
