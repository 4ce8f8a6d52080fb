import{a as o,b as r}from"./chunk-F6ELMA4M.js";import"./chunk-DYHP2VQW.js";export{r as Uploads,o as fileSize};
