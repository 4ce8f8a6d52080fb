import{a as o,b as r}from"./chunk-CWFFVZLO.js";import"./chunk-3HMRJDAY.js";export{r as Uploads,o as fileSize};
