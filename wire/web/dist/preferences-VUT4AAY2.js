import{a as o}from"./chunk-OHPYSPSA.js";import"./chunk-5ZEWBVW7.js";import"./chunk-RTQTAYYL.js";import"./chunk-YVE65IM7.js";export{o as Preferences};
