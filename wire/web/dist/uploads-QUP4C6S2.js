import{a as o,b as r}from"./chunk-6Y3MJLTE.js";import"./chunk-YGMU7ZFH.js";export{r as Uploads,o as fileSize};
