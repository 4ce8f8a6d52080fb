import{a as o,b as r}from"./chunk-AKFSUXJC.js";import"./chunk-7LCL5MDI.js";export{r as Uploads,o as fileSize};
