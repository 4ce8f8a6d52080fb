import{a as o,b as r}from"./chunk-O4IAS2NO.js";import"./chunk-WVZKNENU.js";export{r as Uploads,o as fileSize};
