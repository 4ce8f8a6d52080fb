import{a as o}from"./chunk-ZG7ERIUF.js";import"./chunk-ZQAJLWR7.js";import"./chunk-IYMRI3UI.js";import"./chunk-IWJD4YVF.js";export{o as Privacy};
