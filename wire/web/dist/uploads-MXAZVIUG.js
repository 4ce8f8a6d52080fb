import{a as o,b as r}from"./chunk-3VE7JROV.js";import"./chunk-G3MNZREZ.js";export{r as Uploads,o as fileSize};
